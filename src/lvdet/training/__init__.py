"""Training large-vocabulary detectors: data, samplers, models, losses and the loop."""
