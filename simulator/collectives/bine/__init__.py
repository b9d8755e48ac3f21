"""Bine trees (SC25): trees and exchanges whose partners are near each other on a torus."""
