"""bunraku: a person's motion becomes robot data.

Importing this package registers its environments with Gymnasium, and loads neither MuJoCo nor any optional
library; those come with the first environment that is made.

    import bunraku, gymnasium
    env = gymnasium.make("bunraku/PandaReach-v0")
"""

from bunraku.registration import register_environments

__version__ = "0.1.0"

register_environments()
