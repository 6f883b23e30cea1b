"""Questions about limits: sweeps, re-ranking, audits."""
