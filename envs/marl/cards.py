"""Cards of the family ``marl``."""

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/Vicsek-v0",
        family="marl",
        summary=(
            "Self-propelled particles learn to align their headings from what they see nearby, "
            "under noise."
        ),
        source="Vicsek et al. 1995, doi:10.1103/PhysRevLett.75.1226",
        entry_point="rlbench_suite.envs.marl.vicsek:Vicsek",
        reference="rlbench_suite.envs.marl.vicsek:NeighbourAveraging",
        horizon=100,
        replay_tolerance=0.001,
        difficulties={"medium": 1.0, "easy": 0.3, "hard": 2.0},
        agents=16,
        agent_range=(16, 256),  # with fewer, boxes of the lowest density would be too small
        tags=("continuous", "multi-agent", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/FlockFormation-v0",
        family="marl",
        summary=(
            "Quadcopters gather into a formation around a moving, turning leader and do not "
            "collide, in wind."
        ),
        source="Turpin, Michael & Kumar 2012, doi:10.1007/s10514-012-9279-y",
        entry_point="rlbench_suite.envs.marl.flock_formation:FlockFormation",
        reference="rlbench_suite.envs.marl.formation_control:FormationControl",
        horizon=300,
        replay_tolerance=0.5,
        difficulties={"medium": 1.0, "easy": 0.5, "hard": 2.0},
        agents=5,
        partially_observed=True,
        constraint=Constraint(
            counts="pairs of vehicles nearer than 0.4 m, summed over steps of 50 ms",
            limit=2.0,
            reason="0.1 s in an episode of 15 s",
        ),
        tags=("continuous", "multi-agent", "partially-observed", "safety"),
    ),
    TaskCard(
        id="rlsuite/RouteChoice-v0",
        family="marl",
        summary=(
            "Drivers choose routes through a network in which selfish choices make all of them "
            "late (Braess's paradox)."
        ),
        source="Braess 1968, doi:10.1007/BF01918335; MOMAland 0.2.0, MO-RouteChoice",
        entry_point="rlbench_suite.envs.marl.route_choice:RouteChoice",
        reference="rlbench_suite.envs.marl.route_choice:SystemOptimum",
        yardsticks={"selfish": "rlbench_suite.envs.marl.route_choice:SelfishDrivers"},
        horizon=20,
        agents=42,
        agent_range=(4, 10_000),
        tags=("discrete", "multi-agent", "economic"),
    ),
    TaskCard(
        id="rlsuite/Spread-v0",
        family="marl",
        summary="Three agents share out three landmarks, cover them, and keep apart.",
        source="Lowe et al. 2017, arXiv:1706.02275; rules of MPE2 1.1.1, simple_spread_v3",
        entry_point="rlbench_suite.envs.marl.particles.spread:Spread",
        reference="rlbench_suite.envs.marl.particles.spread:ShareOut",
        horizon=25,
        choices={"actions": ("discrete", "continuous")},
        agents=3,
        tags=("discrete", "multi-agent"),
    ),
    TaskCard(
        id="rlsuite/SpeakerListener-v0",
        family="marl",
        summary="A speaker that cannot move tells a listener to which of three landmarks to go.",
        source=(
            "Lowe et al. 2017, arXiv:1706.02275; rules of MPE2 1.1.1, simple_speaker_listener_v4"
        ),
        entry_point="rlbench_suite.envs.marl.particles.speaker_listener:SpeakerListener",
        reference="rlbench_suite.envs.marl.particles.speaker_listener:NamingSpeaker",
        horizon=25,
        agents=2,
        tags=("discrete", "multi-agent", "communication", "masked"),
    ),
    TaskCard(
        id="rlsuite/Foraging-v0",
        family="marl",
        summary="Agents of different levels collect food that some can only lift together.",
        source=(
            "Papoudakis et al. 2021, arXiv:2006.07869; rules of lb-foraging 2.0.0, "
            "github.com/semitable/lb-foraging"
        ),
        entry_point="rlbench_suite.envs.marl.foraging:Foraging",
        reference="rlbench_suite.envs.marl.joint_collection:JointCollection",
        horizon=50,
        difficulties={"medium": 10, "easy": 8, "hard": 15},
        choices={
            "cooperation": ("free", "forced"),
            "sight": ("all", "2"),
            "foods": ("3", "2", "1"),
        },
        agents=3,
        optima={"medium": 1 / 3, "easy": 1 / 3, "hard": 1 / 3},
        tags=("discrete", "multi-agent"),
    ),
    TaskCard(
        id="rlsuite/Tag-v0",
        family="marl",
        summary="Three predators catch a faster prey that flees.",
        source="Lowe et al. 2017, arXiv:1706.02275; rules of MPE2 1.1.1, simple_tag_v3",
        entry_point="rlbench_suite.envs.marl.particles.tag:Tag",
        reference="rlbench_suite.envs.marl.particles.tag:Pursuit",
        horizon=25,
        difficulties={"medium": 0.8, "easy": 0.4, "hard": 1.0},
        choices={"actions": ("discrete", "continuous")},
        agents=3,
        hard_for_reference=(
            "a prey that always flees, at hard, is touched less than twice in a quarter of the "
            "episodes"
        ),
        tags=("discrete", "multi-agent"),
    ),
    TaskCard(
        id="rlsuite/Adversary-v0",
        family="marl",
        summary="Two agents cover a goal, and mislead an adversary that watches where they go.",
        source="Lowe et al. 2017, arXiv:1706.02275; rules of MPE2 1.1.1, simple_adversary_v3",
        entry_point="rlbench_suite.envs.marl.particles.adversary:Adversary",
        reference="rlbench_suite.envs.marl.particles.adversary:Decoy",
        horizon=25,
        difficulties={"medium": 0.1, "easy": 0.0, "hard": 0.2},
        choices={"actions": ("discrete", "continuous")},
        agents=2,
        partially_observed=True,
        tags=("discrete", "multi-agent", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/MutualReference-v0",
        family="marl",
        summary="Two agents tell each other in words to which of three landmarks to go.",
        source=(
            "Lowe et al. 2017, arXiv:1706.02275; Mordatch & Abbeel 2018, arXiv:1703.04908; rules "
            "of MPE2 1.1.1, simple_reference_v3"
        ),
        entry_point="rlbench_suite.envs.marl.particles.mutual_reference:MutualReference",
        reference="rlbench_suite.envs.marl.particles.mutual_reference:NamingPair",
        horizon=25,
        agents=2,
        tags=("discrete", "multi-agent", "communication"),
    ),
    TaskCard(
        id="rlsuite/Push-v0",
        family="marl",
        summary="Infer which goal a rival goes to, and keep it off by standing there and pushing.",
        source="Lowe et al. 2017, arXiv:1706.02275; rules of MPE2 1.1.1, simple_push_v3",
        entry_point="rlbench_suite.envs.marl.particles.push:Push",
        reference="rlbench_suite.envs.marl.particles.push:Guard",
        horizon=25,
        difficulties={"medium": 4.0, "easy": 3.0, "hard": 5.0},
        choices={"actions": ("discrete", "continuous")},
        partially_observed=True,
        hard_for_reference="a rival that starts nearer to the goal arrives first, and holds it",
        tags=("discrete", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Kuramoto-v0",
        family="marl",
        summary="Oscillators whose coupling is too weak synchronise by pushes, with little effort.",
        source=(
            "Kuramoto 1975, doi:10.1007/BFb0013365; Strogatz 2000, "
            "doi:10.1016/S0167-2789(00)00094-4"
        ),
        entry_point="rlbench_suite.envs.marl.kuramoto:Kuramoto",
        reference="rlbench_suite.envs.marl.kuramoto:LinearRegulator",
        horizon=100,
        replay_tolerance=0.01,
        difficulties={"medium": 0.5, "easy": 0.75, "hard": 0.25},
        agents=16,
        agent_range=(4, 10_000),
        tags=("continuous", "multi-agent"),
    ),
    TaskCard(
        id="rlsuite/Rendezvous-v0",
        family="marl",
        summary="Agents with limited sight meet in one place, and must not lose each other.",
        source="Ando, Oasa, Suzuki & Yamashita 1999, doi:10.1109/70.795787",
        entry_point="rlbench_suite.envs.marl.rendezvous:Rendezvous",
        reference="rlbench_suite.envs.marl.rendezvous:Circumcentre",
        horizon=40,
        difficulties={"medium": 0.9, "easy": 0.6, "hard": 0.99},
        agents=6,
        partially_observed=True,
        tags=("continuous", "multi-agent", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Beach-v0",
        family="marl",
        summary="People share out the sections of a beach, neither too many nor one type in each.",
        source=(
            "Mannion, Devlin, Duggan & Howley 2018, The Knowledge Engineering Review 33; "
            "documented rules of MOMAland 0.2.0, MO-Beach"
        ),
        entry_point="rlbench_suite.envs.marl.beach:Beach",
        reference="rlbench_suite.envs.marl.beach_plan:BestPlan",
        horizon=4,
        choices={"reward": ("team", "individual"), "sight": ("beach", "section")},
        objectives=("capacity", "mixture"),
        weights=(1.0, 10.0),
        hypervolume_reference=(0.0, 0.0),
        agents=30,
        tags=("discrete", "multi-agent", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/ItemGathering-v0",
        family="marl",
        summary="Two agents gather items of three kinds, by what each kind is worth, against time.",
        source=(
            "Kallstrom & Heintz 2019, Tunable dynamics in agent-based simulation using "
            "multi-objective reinforcement learning (ALA workshop); documented rules of MOMAland "
            "0.2.0, MO-ItemGathering"
        ),
        entry_point="rlbench_suite.envs.marl.item_gathering:ItemGathering",
        reference="rlbench_suite.envs.marl.gathering_plan:BestTours",
        horizon=11,
        difficulties={"medium": 6, "easy": 8, "hard": 5},
        choices={"map": ("sampled", "published")},
        objectives=("red", "green", "blue"),
        weights=(1.0, 1.0, 1.0),
        hypervolume_reference=(0.0, 0.0, 0.0),
        agents=2,
        tags=("discrete", "multi-agent", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/Surround-v0",
        family="marl",
        summary="Four drones come close to a target that stays, travels or flees, and keep apart.",
        source=(
            "Felten et al. 2024, arXiv:2407.16312; documented rules of MOMAland 0.2.0, surround, "
            "escort and catch"
        ),
        entry_point="rlbench_suite.envs.marl.surround:Surround",
        reference="rlbench_suite.envs.marl.surround_players:Escorts",
        horizon=200,
        replay_tolerance=0.01,
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        objectives=("target", "spread"),
        weights=(1.0, 0.001),
        hypervolume_reference=(-20.0, -20.0),
        agents=4,
        tags=("continuous", "multi-agent", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/Kitchen-v0",
        family="marl",
        summary="Two cooks share a kitchen: onions, pots, dishes, and soups to serve.",
        source="Carroll et al. 2019, arXiv:1910.05789; rules and layouts of Overcooked-AI 1.1.0",
        entry_point="rlbench_suite.envs.marl.kitchen.kitchen:KitchenTask",
        reference="rlbench_suite.envs.marl.kitchen.team:Team",
        horizon=400,
        choices={
            "layout": (
                "cramped_room",
                "asymmetric_advantages",
                "coordination_ring",
                "forced_coordination",
                "counter_circuit",
            ),
            "reward": ("shaped", "served"),
        },
        agents=2,
        tags=("discrete", "multi-agent"),
    ),
    TaskCard(
        id="rlsuite/Hanabi-v0",
        family="marl",
        summary="Play cards in the right order by hints, though nobody sees its own hand.",
        source=(
            "Bard et al. 2020, arXiv:1902.00506; rules of the Hanabi Learning Environment, "
            "github.com/google-deepmind/hanabi-learning-environment"
        ),
        entry_point="rlbench_suite.envs.marl.hanabi.hanabi:Hanabi",
        reference="rlbench_suite.envs.marl.hanabi.conventions:Conventions",
        horizon=90,
        choices={"deck": ("full", "small")},
        contexts=False,
        agents=2,
        agent_range=(2, 5),
        partially_observed=True,
        tags=("discrete", "multi-agent", "communication", "hidden-information", "masked"),
    ),
)
