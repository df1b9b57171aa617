"""Learning from everybody's answers, and judging a request by what was learnt and by its owner's costs."""
