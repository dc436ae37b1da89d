// The functions of the engine that are used, found once by connect().
#pragma once

#include <gdextension_interface.h>

// ONE(type, name), or AS(type, field, name) where the field has its own name.
#define VKF_GODOT_FUNCTIONS(ONE, AS)                                                            \
  ONE(GDExtensionInterfaceGetVariantFromTypeConstructor, get_variant_from_type_constructor)     \
  ONE(GDExtensionInterfaceGetVariantToTypeConstructor, get_variant_to_type_constructor)         \
  AS(GDExtensionInterfaceGetVariantGetInternalPtrFunc, variant_get_ptr_internal_getter,         \
     "variant_get_ptr_internal_getter")                                                         \
  ONE(GDExtensionInterfaceVariantGetPtrDestructor, variant_get_ptr_destructor)                  \
  ONE(GDExtensionInterfaceVariantNewNil, variant_new_nil)                                       \
  ONE(GDExtensionInterfaceVariantNewCopy, variant_new_copy)                                     \
  ONE(GDExtensionInterfaceVariantDestroy, variant_destroy)                                      \
  ONE(GDExtensionInterfaceVariantConstruct, variant_construct)                                  \
  ONE(GDExtensionInterfaceVariantCall, variant_call)                                            \
  ONE(GDExtensionInterfaceVariantGetType, variant_get_type)                                     \
  ONE(GDExtensionInterfaceVariantBooleanize, variant_booleanize)                                \
  ONE(GDExtensionInterfaceVariantStringify, variant_stringify)                                  \
  ONE(GDExtensionInterfaceStringNewWithUtf8CharsAndLen, string_new_with_utf8_chars_and_len)     \
  ONE(GDExtensionInterfaceStringToUtf8Chars, string_to_utf8_chars)                              \
  ONE(GDExtensionInterfaceStringNameNewWithUtf8Chars, string_name_new_with_utf8_chars)          \
  ONE(GDExtensionInterfacePackedFloat32ArrayOperatorIndex, packed_float32_array_operator_index) \
  ONE(GDExtensionInterfacePackedFloat32ArrayOperatorIndexConst,                                 \
      packed_float32_array_operator_index_const)                                                \
  ONE(GDExtensionInterfacePackedByteArrayOperatorIndexConst,                                    \
      packed_byte_array_operator_index_const)                                                   \
  ONE(GDExtensionInterfaceGlobalGetSingleton, global_get_singleton)                             \
  ONE(GDExtensionInterfaceObjectGetInstanceFromId, object_get_instance_from_id)                 \
  ONE(GDExtensionInterfaceObjectGetInstanceId, object_get_instance_id)                          \
  ONE(GDExtensionInterfaceObjectSetInstance, object_set_instance)                               \
  ONE(GDExtensionInterfaceObjectSetInstanceBinding, object_set_instance_binding)                \
  ONE(GDExtensionInterfaceObjectGetInstanceBinding, object_get_instance_binding)                \
  ONE(GDExtensionInterfaceObjectDestroy, object_destroy)                                        \
  ONE(GDExtensionInterfaceRefSetObject, ref_set_object)                                         \
  ONE(GDExtensionInterfaceFileAccessGetBuffer, file_access_get_buffer)                          \
  ONE(GDExtensionInterfaceFileAccessStoreBuffer, file_access_store_buffer)                      \
  ONE(GDExtensionInterfacePrintError, print_error)                                              \
  ONE(GDExtensionInterfacePrintWarning, print_warning)                                          \
  ONE(GDExtensionInterfaceClassdbConstructObject2, classdb_construct_object2)                   \
  ONE(GDExtensionInterfaceClassdbRegisterExtensionClass5, classdb_register_extension_class5)    \
  ONE(GDExtensionInterfaceClassdbRegisterExtensionClassMethod,                                  \
      classdb_register_extension_class_method)                                                  \
  ONE(GDExtensionInterfaceClassdbRegisterExtensionClassProperty,                                \
      classdb_register_extension_class_property)                                                \
  ONE(GDExtensionInterfaceClassdbRegisterExtensionClassPropertyGroup,                           \
      classdb_register_extension_class_property_group)                                          \
  ONE(GDExtensionInterfaceClassdbRegisterExtensionClassSignal,                                  \
      classdb_register_extension_class_signal)                                                  \
  ONE(GDExtensionInterfaceClassdbUnregisterExtensionClass, classdb_unregister_extension_class)  \
  ONE(GDExtensionInterfaceRegisterMainLoopCallbacks, register_main_loop_callbacks)              \
  AS(GDExtensionsInterfaceEditorHelpLoadXmlFromUtf8Chars, editor_help_load,                     \
     "editor_help_load_xml_from_utf8_chars")

namespace gd {

struct Interface {
#define VKF_FIELD(type, field) type field = nullptr;
#define VKF_FIELD_AS(type, field, called) type field = nullptr;
  VKF_GODOT_FUNCTIONS(VKF_FIELD, VKF_FIELD_AS)
#undef VKF_FIELD
#undef VKF_FIELD_AS
};
extern Interface interface;

}  // namespace gd
