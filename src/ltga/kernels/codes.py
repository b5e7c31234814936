"""How operators and kernels call the ways to score and to normalise: compiled code compares numbers, not strings."""

GIVEN, GATV2, DOT = 0, 1, 2
SOFTMAX, Q_SOFTMAX, ENTMAX = 0, 1, 2

SCORINGS = {"given": GIVEN, "gatv2": GATV2, "dot": DOT}
NORMALIZERS = {"softmax": SOFTMAX, "q_softmax": Q_SOFTMAX, "entmax": ENTMAX}
