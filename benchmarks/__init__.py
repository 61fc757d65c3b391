"""How fast Triolet is, each figure beside a limit measured in the same run."""
