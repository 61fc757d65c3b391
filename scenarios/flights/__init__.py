"""Loading a year of flights, and finding the worst routes."""
