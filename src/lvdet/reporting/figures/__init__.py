"""Figures: each a function from results to a Plotly figure."""
