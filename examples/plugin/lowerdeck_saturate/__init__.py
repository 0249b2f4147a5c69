"""An example of a plugin: the operator com.acme.Saturate, a pass on it, and a target."""

from lowerdeck.plugins import Plugin
from lowerdeck_saturate.operator import SATURATE
from lowerdeck_saturate.passes import MergeSaturatePass
from lowerdeck_saturate.target import CORTEX_A72

PLUGIN = Plugin(passes=[MergeSaturatePass], targets=[CORTEX_A72], operators=[SATURATE])
