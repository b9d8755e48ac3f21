"""The readable engine on SimPy, which says what is right."""
