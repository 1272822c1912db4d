"""Pictures of vehicles in flight: camera, scene, and the views that are drawn."""
