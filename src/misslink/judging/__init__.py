"""How a judge is asked, and what of its reply is believed."""
