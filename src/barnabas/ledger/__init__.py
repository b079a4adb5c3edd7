"""The ledger: a compacted one-partition topic on the destination, one per mirror; the only truth about positions.

Kafka has no transaction over two clusters and needs none here: the position of the source lives at the
destination, in the transaction that holds the records. Whoever takes over a mirror fences first, then reads.

Invariants, cited by letter in code and tests
    A. A record and the position past it become visible together or not at all.
    B. Nobody writes for a mirror before every earlier writer of that mirror is fenced.
    C. Positions are read only after B, up to an acknowledged write of our own that was made after B.
    D. Within an epoch every range is handed to exactly one task attempt.
    E. Positions never go back except by a command that a person gave.
"""
