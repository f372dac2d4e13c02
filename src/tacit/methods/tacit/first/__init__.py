"""First models, a file and a formula each: what they cost, what they cannot take, how they fit."""
