"""From an invitation and a calendar as it stood to the fifteen features of Roy (2006), appendix B."""
