"""Programs at more ranks than they were recorded on, from recordings at fewer."""
