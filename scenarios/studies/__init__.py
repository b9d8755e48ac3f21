"""What results say: cases, correlations, sentences; nothing is drawn here."""
