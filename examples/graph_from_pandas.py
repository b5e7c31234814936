"""Your own graph from two pandas tables: people, who follows whom, and a scikit-learn style classifier."""

import tempfile

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score

from ltga import LTGAClassifier, Nodes

# Two tables as they might come from a database: some people have told us their team, others have not.
rng = np.random.default_rng(0)
team = rng.choice(["blue", "red"], size=300)
people = pd.DataFrame(
    {
        "name": [f"person {number}" for number in range(300)],
        "age": rng.integers(18, 80, size=300),
        "posts": rng.poisson(np.where(team == "blue", 6, 9)),
        "team": pd.Series(team).where(rng.random(300) < 0.6),  # None: not known
    }
).set_index("name")
pairs = rng.integers(0, 300, size=(3000, 2))
pairs = pairs[(team[pairs[:, 0]] == team[pairs[:, 1]]) | (rng.random(3000) < 0.2)]  # mostly within a team
follows = pd.DataFrame(people.index.to_numpy()[pairs], columns=["follower", "followed"]).drop_duplicates()

# From names to numbers. Information flows from source to target: a person is told about those they follow.
source = people.index.get_indexer(follows["followed"])
target = people.index.get_indexer(follows["follower"])
features = people[["age", "posts"]]
features = (features - features.mean()) / features.std()

# People without a team take part, they just teach nothing.
classifier = LTGAClassifier("ltga-head", epochs=60, hidden_channels=8, heads=4, dropout=0.2)
classifier.fit(features, people["team"], np.stack([source, target]))
people["predicted"] = classifier.transduction_
unknown = people["team"].isna().to_numpy()
accuracy = (people["predicted"].to_numpy() == team)[unknown].mean()
print(people.head())
print(f"{accuracy:.1%} of the {unknown.sum()} unknown teams are right")

# Splits over nodes hide labels, never edges.
nodes = Nodes(features, np.stack([source, target]))
known = ~unknown
scores = cross_val_score(classifier, nodes[known], people["team"][known].to_numpy(), cv=3)
print(f"cross-validated accuracy {scores.mean():.3f} +- {scores.std():.3f}")

with tempfile.TemporaryDirectory() as folder:
    path = classifier.save(f"{folder}/teams.safetensors")  # tensors and JSON in one file, no pickle
    again = LTGAClassifier.load(path)
assert (again.predict(nodes) == classifier.predict(nodes)).all()
