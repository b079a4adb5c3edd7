"""The border with the person at the terminal: one file per command. Results on stdout, everything else on stderr."""
