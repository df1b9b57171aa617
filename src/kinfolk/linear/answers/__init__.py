"""What fitted and loaded linear models say, with numpy alone.

hierarchical  ``HierarchicalPredictor``: answers for labels and for numbers; the fitted model as one value
archive       that value as plain data, and back
explanation   why a row got its label
"""
