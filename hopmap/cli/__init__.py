"""The command `hopmap`: arguments, words, tables."""
