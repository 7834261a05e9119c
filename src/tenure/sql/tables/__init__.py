"""System tables: relations whose rows are made when they are asked for."""
