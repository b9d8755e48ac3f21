"""What a mapping costs before anything is replayed."""
