"""All legalizations: importing this module registers them."""
