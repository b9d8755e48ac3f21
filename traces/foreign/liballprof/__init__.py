"""liballprof's text, one file a rank."""
