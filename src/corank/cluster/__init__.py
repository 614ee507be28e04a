"""Training on a Ray cluster: users are divided among workers, item vectors are the same on all of them.

`steps` has the collective operations, and nothing of it, of `shard`, of `loading` or of the methods (`*_shard`) knows
Ray: they are generators that a group of workers runs side by side. `worker` runs them, `ray_cluster` puts workers on a
cluster, `session` is the fit as the driver sees it. See docs/cluster.md.
"""
