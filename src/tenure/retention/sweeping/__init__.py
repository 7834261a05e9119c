"""Sweeps: publish how much history stays, then remove the rest, in the store and in the lake."""
