"""Agents that predict where people look: saliency maps and scanpaths."""
