"""A tree of Pleach as a DecisionTreeRegressor of scikit-learn (held to 1.9): predict() of float32 rows is the score.

    import tree_sklearn
    regressor = tree_sklearn.load("tree_sklearn.json")
    scores = regressor.predict(rows)  # rows: float32, one column for each of regressor.pleach["features"]
    keys = tree_sklearn.key(regressor, rows)
"""

import json

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree


def load(path):
    """The regressor; what else the file says is in its attribute `pleach`."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    num_features = len(document["features"])
    # Fitted to nothing, for the fields that a node has in the version that is installed.
    regressor = DecisionTreeRegressor().fit(np.zeros((1, num_features), np.float32), [0.0])
    state = regressor.tree_.__getstate__()
    nodes = np.zeros(len(document["feature"]), dtype=state["nodes"].dtype)
    nodes["left_child"] = document["children_left"]
    nodes["right_child"] = document["children_right"]
    for name in ("feature", "threshold", "n_node_samples", "weighted_n_node_samples"):
        nodes[name] = document[name]
    values = np.array(document["value"], np.float64).reshape(-1, 1, 1)
    state.update(max_depth=document["max_depth"], node_count=len(nodes), nodes=nodes, values=values)
    tree = Tree(num_features, np.array([1], np.intp), 1)
    tree.__setstate__(state)
    regressor.tree_ = tree
    regressor.pleach = document
    return regressor


def key(regressor, rows):
    """The weighted keys of rows, 0 without one: the least comes first inside a tier."""
    total = np.zeros(len(rows))
    for feature, weight in regressor.pleach["key_weights"]:
        total += weight * rows[:, feature].astype(np.float64)
    return total
