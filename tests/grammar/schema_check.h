// A small JSON schema validator for the tests, on a parser that the library's grammars do not use.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace vkformer::test {

using Json = nlohmann::json;

class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(root) {}

  bool holds(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& [key, rule] : schema.items()) {
      if (!keyword_holds(schema, key, rule, value)) return false;
    }
    return true;
  }

 private:
  static bool has_type(const std::string& name, const Json& value) {
    if (name == "integer") {
      return value.is_number() && value.get<double>() == std::floor(value.get<double>());
    }
    if (name == "number") return value.is_number();
    return name == value.type_name();
  }

  static size_t length_of(const std::string& text) {
    size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
  }

  int count_holding(const Json& schemas, const Json& value) const {
    int count = 0;
    for (const Json& schema : schemas) count += holds(schema, value);
    return count;
  }

  bool keyword_holds(const Json& schema, const std::string& key, const Json& rule,
                     const Json& value) const {
    if (key == "type") {
      if (rule.is_string()) return has_type(rule, value);
      for (const Json& name : rule) {
        if (has_type(name, value)) return true;
      }
      return false;
    }
    if (key == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (key == "const") return rule == value;
    if (key == "anyOf") return count_holding(rule, value) > 0;
    if (key == "oneOf") return count_holding(rule, value) == 1;
    if (key == "allOf") return count_holding(rule, value) == static_cast<int>(rule.size());
    if (key == "$ref") {
      const std::string path = rule.get<std::string>().substr(1);
      return holds(root_.at(Json::json_pointer(path)), value);
    }
    if (value.is_number()) return number_holds(key, rule, value.get<double>());
    if (value.is_string()) return string_holds(key, rule, value.get<std::string>());
    if (value.is_array()) return array_holds(schema, key, rule, value);
    if (value.is_object()) return object_holds(schema, key, rule, value);
    return true;
  }

  static bool number_holds(const std::string& key, const Json& rule, double value) {
    if (key == "minimum") return value >= rule.get<double>();
    if (key == "maximum") return value <= rule.get<double>();
    if (key == "exclusiveMinimum") return value > rule.get<double>();
    if (key == "exclusiveMaximum") return value < rule.get<double>();
    return true;
  }

  static bool string_holds(const std::string& key, const Json& rule, const std::string& value) {
    if (key == "minLength") return length_of(value) >= rule.get<size_t>();
    if (key == "maxLength") return length_of(value) <= rule.get<size_t>();
    if (key == "pattern") {
      return std::regex_search(value, std::regex(rule.get<std::string>(), std::regex::ECMAScript));
    }
    if (key != "format") return true;
    const std::string name = rule;
    if (name == "date") return is_date(value);
    static const std::regex time(
        "([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])");
    if (name == "time") return std::regex_match(value, time);
    if (name == "date-time") {
      return value.size() > 11 && is_date(value.substr(0, 10)) && value[10] == 'T' &&
             std::regex_match(value.substr(11), time);
    }
    static const std::regex uuid("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    return name == "uuid" ? std::regex_match(value, uuid) : name == "ipv4";
  }

  static bool is_date(const std::string& text) {
    static const std::regex shape("[0-9]{4}-[0-9]{2}-[0-9]{2}");
    if (!std::regex_match(text, shape)) return false;
    const int year = std::stoi(text.substr(0, 4));
    const int month = std::stoi(text.substr(5, 2));
    const int day = std::stoi(text.substr(8, 2));
    if (month < 1 || month > 12 || day < 1) return false;
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int days[] = {31, is_leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return day <= days[month - 1];
  }

  bool array_holds(const Json& schema, const std::string& key, const Json& rule,
                   const Json& value) const {
    if (key == "minItems") return value.size() >= rule.get<size_t>();
    if (key == "maxItems") return value.size() <= rule.get<size_t>();
    const size_t fixed = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (key == "prefixItems" && i < fixed && !holds(rule[i], value[i])) return false;
      if (key == "items" && i >= fixed && !holds(rule, value[i])) return false;
    }
    return true;
  }

  bool object_holds(const Json& schema, const std::string& key, const Json& rule,
                    const Json& value) const {
    if (key == "minProperties") return value.size() >= rule.get<size_t>();
    if (key == "maxProperties") return value.size() <= rule.get<size_t>();
    if (key == "required") {
      for (const Json& name : rule) {
        if (!value.contains(name.get<std::string>())) return false;
      }
    }
    for (const auto& [name, member] : value.items()) {
      if (key == "properties" && rule.contains(name) && !holds(rule[name], member)) return false;
      const bool is_named = schema.contains("properties") && schema["properties"].contains(name);
      if (key == "additionalProperties" && !is_named && !holds(rule, member)) return false;
    }
    return true;
  }

  const Json& root_;
};

}  // namespace vkformer::test
