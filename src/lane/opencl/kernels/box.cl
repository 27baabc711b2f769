// Walking over boxes of BOX_RANK dimensions.

// Offset of row number `row`: a combination of all coordinates but the last.
long row_offset(int row, const int* extent, const long* stride) {
  long offset = 0;
  for (int d = BOX_LAST - 1; row > 0; --d) {
    offset += row % extent[d] * stride[d];
    row /= extent[d];
  }
  return offset;
}

// The same where the last dimension counts too.
long line_offset(int line, const int* extent, const long* stride) {
  return line % extent[BOX_LAST] * stride[BOX_LAST] +
         row_offset(line / extent[BOX_LAST], extent, stride);
}
