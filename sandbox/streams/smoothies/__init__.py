"""A chain of smoothie shops: what it sells, who buys what, when stock runs low."""
