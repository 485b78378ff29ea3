/* What every shader begins with. The build defines VKA_LOCAL, VKA_TILE_ROWS and VKA_TILE_COLS from the row of
 * variants.inc. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#define VKA_GLSL
#include "params.h"

layout(local_size_x = VKA_LOCAL, local_size_y = 1, local_size_z = 1) in;
