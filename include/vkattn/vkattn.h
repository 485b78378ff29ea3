/* vkattn: tensor-parallel attention on Vulkan. Everything public; each header can also be included alone. */
#ifndef VKATTN_VKATTN_H
#define VKATTN_VKATTN_H

#include "vkattn/attention.h"
#include "vkattn/buffer.h"
#include "vkattn/cache.h"
#include "vkattn/context.h"
#include "vkattn/exchange.h"
#include "vkattn/forward.h"
#include "vkattn/layer.h"
#include "vkattn/layer_desc.h"
#include "vkattn/layout.h"
#include "vkattn/model.h"
#include "vkattn/peak.h"
#include "vkattn/projection.h"
#include "vkattn/status.h"
#include "vkattn/tensor.h"
#include "vkattn/tune.h"
#include "vkattn/version.h"

#endif
