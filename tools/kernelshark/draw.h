/* SPDX-License-Identifier: GPL-2.0 */
/* The draw handler, which is C++ because KernelShark's shapes are. */
#ifndef VMP_DRAW_H
#define VMP_DRAW_H

#ifdef __cplusplus
extern "C" {
#endif

#include "libkshark-plugin.h"

void vmp_draw(struct kshark_cpp_argv *argv, int sd, int val, int draw_action);

#ifdef __cplusplus
}
#endif

#endif
