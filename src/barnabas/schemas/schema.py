"""A schema as registries hand it out, and when two of them are the same schema.

Registries reformat what they are given (white space, key order, comments of a .proto file), so equality
is judged on a canonical form: its type, its content without formatting, and its references.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from barnabas import jsontext
from barnabas.errors import Refused

SchemaType = Literal["AVRO", "JSON", "PROTOBUF"]
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
LARGEST_VERSION: Final = 2**31 - 1

# Words that carry meaning in a .proto file; comments are matched so that they can be dropped. A string or comment that
# does not end takes the rest: to look for its end again at every quote would take hours in a text of some megabytes.
_PROTO_TOKEN: Final = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<token>"(?:\\(?:.|\Z)|[^"\\])*(?:"|\Z)|'(?:\\(?:.|\Z)|[^'\\])*(?:'|\Z)|[\w.]+|[^\s\w])""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Reference:
    """A name used inside a schema, and the subject's version that defines it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """Content of one schema. `contract` is the JSON of Confluent's metadata and rules, if it has any."""

    text: str
    type: SchemaType = "AVRO"
    references: tuple[Reference, ...] = ()
    contract: str = ""

    def referring(self, references: tuple[Reference, ...]) -> "Schema":
        """The same schema with its references pointing elsewhere."""
        return replace(self, references=references)

    def body(self) -> dict[str, Any]:
        """What a registry wants to be sent to register or look up this schema."""
        body: dict[str, Any] = {"schema": self.text}
        if self.type != "AVRO":  # absent means Avro, also to registries that know nothing else
            body["schemaType"] = self.type
        if self.references:
            body["references"] = [vars(each) for each in self.references]
        if self.contract:
            body.update(json.loads(self.contract))
        return body

    def canonical(self) -> str:
        """A text that is equal for two schemas exactly when they mean the same, references included."""
        content = " ".join(proto_tokens(self.text)) if self.type == "PROTOBUF" else _canonical_json(self.text)
        references = sorted([each.name, each.subject, each.version] for each in self.references)
        return json.dumps([self.type, content, references, self.contract])


@dataclass(frozen=True)
class Version:
    """One version of a subject: its number there, the schema's id in that registry, and the schema."""

    subject: str
    number: int
    id: int
    schema: Schema


def from_answer(answer: dict[str, Any]) -> Schema:
    """The schema in a registry's answer."""
    kind = answer.get("schemaType") or "AVRO"
    if kind not in TYPES:
        raise Refused(f"schema type {kind} is none of {', '.join(TYPES)}: Barnabas cannot copy it")
    references = tuple(
        Reference(jsontext.words(each["name"]), jsontext.words(each["subject"]), version_number(each["version"]))
        for each in answer.get("references") or ()
    )
    contract = {name: answer[name] for name in ("metadata", "ruleSet") if answer.get(name)}
    return Schema(
        text=jsontext.words(answer["schema"]),
        type=cast(SchemaType, kind),
        references=references,
        contract=json.dumps(contract, sort_keys=True) if contract else "",
    )


def version_number(value: object) -> int:
    """A version of a subject; ValueError for what is none."""
    return jsontext.whole(value, 0, LARGEST_VERSION)


def proto_tokens(text: str) -> Iterator[str]:
    """The tokens of a .proto file without white space and comments."""
    return (match["token"] for match in _PROTO_TOKEN.finditer(text) if match["token"] is not None)


def _canonical_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text.strip()  # an Avro primitive may be registered as a bare word
