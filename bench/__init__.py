"""How fast, how dear, how late: Barnabas beside MirrorMaker 2 and a plain loop, on the same records in one run.

    python -m bench                  everything that `make bench` shows
    python -m bench --help           a part of it
    python -m bench growth           one scenario alone

A run makes two clusters, fills a source topic once for each shape, and lets the contenders copy it in turn into topics
that are deleted afterwards.
"""
