"""What the guards of the database cost the statements of a delivery."""
