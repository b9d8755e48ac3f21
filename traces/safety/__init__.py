"""Files that appear whole, untrusted input in a guarded process, memory asked for first."""
