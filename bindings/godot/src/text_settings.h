// The inspector's properties of whatever writes texts.
#pragma once

#include <algorithm>

#include "text_job.h"

namespace vkf_godot {

template <class T>
void register_text_settings(gd::Class& c, TextSettings& (*of)(T&)) {
  using gd::Variant;
  const auto whole = [&](const char* name, const char* range, int TextSettings::*field) {
    c.property<T>(
        name, GDEXTENSION_VARIANT_TYPE_INT, gd::range(range),
        [=](T& self) { return of(self).*field; },
        [=](T& self, const Variant& value) {
          of(self).*field = static_cast<int>(std::clamp<int64_t>(value.as_int(), -1, 1 << 30));
        });
  };
  const auto real = [&](const char* name, const char* range, double TextSettings::*field) {
    c.property<T>(
        name, GDEXTENSION_VARIANT_TYPE_FLOAT, gd::range(range),
        [=](T& self) { return of(self).*field; },
        [=](T& self, const Variant& value) { of(self).*field = value.as_double(); });
  };
  const auto text = [&](const char* name, std::string TextSettings::*field) {
    c.property<T>(
        name, GDEXTENSION_VARIANT_TYPE_STRING, gd::multiline(),
        [=](T& self) { return of(self).*field; },
        [=](T& self, const Variant& value) { of(self).*field = value.as_string(); });
  };
  c.group("Length");
  whole("max_new_tokens", "0,4096,1,or_greater", &TextSettings::max_new_tokens);
  whole("min_new_tokens", "0,4096,1,or_greater", &TextSettings::min_new_tokens);
  c.property<T>(
      "stop", GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY, {},
      [=](T& self) { return Variant::strings(of(self).stop); },
      [=](T& self, const Variant& value) { of(self).stop = value.as_strings(); });
  c.group("Choice of tokens");
  whole("beams", "0,16,1", &TextSettings::beams);
  c.property<T>(
      "sampling", GDEXTENSION_VARIANT_TYPE_INT, gd::choices("Model's own:0,Greedy:1,Sampled:2"),
      [=](T& self) { return of(self).sampling; },
      [=](T& self, const Variant& value) {
        of(self).sampling = static_cast<int>(std::clamp<int64_t>(value.as_int(), 0, 2));
      });
  real("temperature", "-1,2,0.01,or_greater", &TextSettings::temperature);
  whole("top_k", "-1,200,1,or_greater", &TextSettings::top_k);
  real("top_p", "-1,1,0.01", &TextSettings::top_p);
  real("min_p", "-1,1,0.01", &TextSettings::min_p);
  real("repetition_penalty", "-1,2,0.01,or_greater", &TextSettings::repetition_penalty);
  c.property<T>(
      "seed", GDEXTENSION_VARIANT_TYPE_INT, gd::range("0,1000000,1,or_greater"),
      [=](T& self) { return of(self).seed; },
      [=](T& self, const Variant& value) { of(self).seed = value.as_int(); });
  c.group("Form");
  text("grammar", &TextSettings::grammar);
  text("schema", &TextSettings::schema);
}

}  // namespace vkf_godot
