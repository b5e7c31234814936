"""Operators that torch knows: checked, differentiable, each with its plain definition beside the compiled one."""
