// The examples in C of vkformer as a guest on the application's own device.
//
// Threading: one thread. Lifetime: nothing of the application is kept.
#ifndef REFERENCE_C_GUEST_H
#define REFERENCE_C_GUEST_H

#include <vkformer/vkformer.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the application has, and what it does when it is asked.
typedef struct c_guest {
  vkf_adopted_device* host;  // loader, instance, physical device and version
  void* application;         // for the functions below
  // Makes the VkDevice with what `host` says to enable, and adds it and its queue to `host`.
  int (*make_device)(void* application, vkf_adopted_device* host);
  void* (*begin)(void* application);  // a VkCommandBuffer that is being recorded
  int (*submit)(void* application);   // submits it and waits
  uint64_t buffer;                    // VkBuffer, of 1024 bytes
  vkf_image_input image;
  const char* classifier;  // a model of texts
  const char* vision;      // a model of pictures
} c_guest;

// 1 if all calls succeeded, else 0 with the reason in `error`.
int show_c_guest(const c_guest* guest, vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // REFERENCE_C_GUEST_H
