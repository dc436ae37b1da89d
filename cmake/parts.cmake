# vkformer_select_parts(): takes the parts whose option VKFORMER_WITH_<PART> is OFF out of the list `sources`.
# Sources of a part's rooms are not compiled. Its doors are: the files whose functions applications and
# other parts call. VKFORMER_ABSENT_PART makes guarded() (base/guarded.h) and guard() (c_api/support.h) compile
# their bodies to nothing and return an error that names the option. So every build exports the same
# functions, and none of them is written twice.
#
# vkformer_part(NAME ROOMS folders or files... [KEEP files...] DOORS files...): files of runtime/ without .cpp; KEEP
# is what other parts use.
macro(vkformer_part name)
  cmake_parse_arguments(part "" "" "ROOMS;KEEP;DOORS" ${ARGN})
  if(NOT VKFORMER_WITH_${name})
    set(remaining ${sources})
    foreach(path IN LISTS part_ROOMS)
      list(FILTER sources EXCLUDE REGEX "/runtime/${path}(/.*)?[.]cpp$")
    endforeach()
    foreach(path IN LISTS part_KEEP part_DOORS)
      set(file ${PROJECT_SOURCE_DIR}/runtime/${path}.cpp)
      if(file IN_LIST remaining)
        list(APPEND sources ${file})
      endif()
    endforeach()
    foreach(path IN LISTS part_DOORS)
      set(file ${PROJECT_SOURCE_DIR}/runtime/${path}.cpp)
      get_source_file_property(other ${file} COMPILE_DEFINITIONS)
      if(NOT other)
        set_source_files_properties(${file} PROPERTIES
          COMPILE_DEFINITIONS "VKFORMER_ABSENT_PART=\"${name}\"")
      endif()
    endforeach()
  endif()
endmacro()

macro(vkformer_select_parts)
  vkformer_part(TASKS ROOMS tasks DOORS api/tasks api/rerank api/detect api/segment api/depth api/transcriber api/speaker
    api/image_prompt_reader c_api/tasks)
  vkformer_part(GRAMMAR ROOMS grammar DOORS api/grammar c_api/grammar)
  vkformer_part(CHAT ROOMS chat DOORS api/chat c_api/chat)
  vkformer_part(IMAGE ROOMS image attention_view KEEP image/picture_processor image/picture_tables
    image/resize
    DOORS api/picture api/heat_map api/attention_view api/segment api/depth c_api/picture c_api/views tasks/task_pictures)
  vkformer_part(AUDIO ROOMS audio tasks/transcribe
    DOORS api/audio api/transcriber c_api/audio tasks/task_sounds)
  vkformer_part(OPERATORS ROOMS operators session/multi_head_attention_session
    KEEP operators/graph_runner DOORS api/operators api/attention api/recorded_operator c_api/operators)
  vkformer_part(PROFILE ROOMS measure KEEP measure/matrix_proof
    DOORS api/benchmark api/cluster_plan api/tuning api/plan_text c_api/profile)
  vkformer_part(WRITING ROOMS load/gguf_export load/gguf_keys load/quantize_model load/pack_model
    gguf/gguf_vocabulary checkpoint/gguf_writer checkpoint/ggml_encode
    DOORS api/quantize api/model_pack c_api/model_files)
  list(REMOVE_DUPLICATES sources)
endmacro()
