"""Chakra execution traces of MLCommons, one file a rank: nodes and what they wait for."""
