"""Paraver's traces (.prv), as Extrae writes them."""
