// The fixed parts of a page that shows attention: markup, style and script. Between them go the
// title (as markup text) and the data (as JSON without "<").
#pragma once

#include <string_view>

namespace vkformer {

// In the order of the page: kPageStart, title, kPageHead, title, kPageBody, data, kPageEnd.
extern const std::string_view kPageStart;
extern const std::string_view kPageHead;
extern const std::string_view kPageBody;
extern const std::string_view kPageEnd;

}  // namespace vkformer
