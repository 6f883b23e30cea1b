"""Made-up data with known properties: a simulated long-tail detector, and a set of images."""
