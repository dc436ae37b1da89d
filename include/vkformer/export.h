// VKFORMER_API marks what libvkformer.so exports; everything else stays hidden.
#pragma once

#if defined(_WIN32)
#if defined(VKFORMER_BUILDING)
#define VKFORMER_API __declspec(dllexport)
#else
#define VKFORMER_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define VKFORMER_API __attribute__((visibility("default")))
#else
#define VKFORMER_API
#endif
