"""Fleets by key that many processes share, on this machine or on a cluster."""
