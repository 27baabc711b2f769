// Arguments of kernels that have more of them than reads well. Compiled by both sides: every OpenCL
// program starts with this file, and arguments.h includes it, so that they cannot disagree. Only
// int, long and float members, longs first: no padding that the two compilers could place apart.

// tandem::Function, in its order.
enum FunctionNumber {
  IDENTITY,
  RELU,
  CLIP,
  LEAKY_RELU,
  ELU,
  SIGMOID,
  HARD_SIGMOID,
  TANH,
  SILU,
  HARD_SWISH,
  GELU,
  GELU_TANH,
  SOFTPLUS,
  ERF,
  EXP,
  LOG,
  SQRT,
  RECIPROCAL,
  ABS,
  NEG,
  FLOOR,
  CEIL,
  SIN,
  COS,
};

// A box of pixels (or of rows of a matrix) and the functions around it. Row r of the box is
// (image, y, x), x fastest.
struct TileArguments {
  long in_image, in_line, in_pixel, in_channel;      // strides of the input, in floats
  long out_image, out_line, out_pixel, out_channel;  // of the output
  long residual_image, residual_line, residual_pixel, residual_channel;
  int rows;                   // in the box
  int box_height, box_width;  // of the box in each image
  int first_y, first_x;       // of the box in the output tensor
  int channels;               // output channels of the box
  int first_panel;            // of 16 output channels, where the box starts
  int in_height, in_width;
  int kernel_height, kernel_width;
  int stride_y, stride_x;
  int dilation_y, dilation_x;
  int pad_top, pad_left;
  int group_channels, group_outputs;  // input and output channels of one group
  int last_group;
  // How the work is cut: K blocks of whole taps, or of channels of one tap; tiles of rows and
  // panels that one work-group takes.
  int taps_per_block, channels_per_block;
  int tiles_per_group, panels_per_group;
  int exact_input;  // reading past a group's channels, up to a multiple of 16, is not safe
  int has_bias, has_residual;
  int function;
  float alpha, beta;
};

// c[batch][rows][columns] = scale * op(a) * op(b). Three batch dimensions, innermost last.
struct MatMulArguments {
  long a_batch[3], b_batch[3], c_batch[3];
  long a_row, a_depth;     // strides over rows and over the summed index
  long b_depth, b_column;  // one of the two is 1
  long c_row;
  int batch[3];
  int rows, columns, depth;
  int tiles_per_group, panels_per_group;
  float scale;
};

// Depthwise convolution, pooling: a window over pixels, channel by channel.
struct WindowArguments {
  long in_image, in_line, in_pixel, in_channel;
  long out_image, out_line, out_pixel, out_channel;
  long residual_image, residual_line, residual_pixel, residual_channel;
  int images, box_height, box_width;
  int first_y, first_x;
  int channels;
  int lines_per_group, channels_per_group;
  int weight_stride;  // floats between taps
  int in_height, in_width;
  int kernel_height, kernel_width;
  int stride_y, stride_x;
  int dilation_y, dilation_x;
  int pad_top, pad_left, pad_bottom, pad_right;
  int count_pads;
  int has_bias, has_residual;
  int function;
  float alpha, beta;
};

// The kernels below walk over boxes of up to BOX_RANK dimensions, outermost first; work-groups
// share the box along its last dimension and the others taken together ("rows").
enum BoxRank { BOX_RANK = 8, BOX_LAST = BOX_RANK - 1 };

// out = activate(a op b), or activate(a), or a.
struct ElementwiseArguments {
  long out_stride[BOX_RANK];
  long a_stride[BOX_RANK];
  long b_stride[BOX_RANK];
  int extent[BOX_RANK];
  int rows, rows_per_group;
  int columns_per_group;  // of the last dimension
  int operation;          // tandem::BinaryAttributes::Kind
  int function;
  float alpha, beta;
};

// Each coordinate of the box lies `first` further in the padded source.
struct PadArguments {
  long out_stride[BOX_RANK];
  long a_stride[BOX_RANK];
  int extent[BOX_RANK];
  int first[BOX_RANK];
  int source[BOX_RANK];  // extents of the source
  int rows, rows_per_group;
  int mode;  // tandem::PadAttributes::Mode
  float value;
};

// Element number i of the output in row-major order is element number i of the source.
struct ReshapeArguments {
  long out_stride[BOX_RANK];
  long a_stride[BOX_RANK];
  long number[BOX_RANK];  // what a step along each dimension adds to an element's number
  long first_number;      // of the box's first element
  int extent[BOX_RANK];
  int source[BOX_RANK];  // extents of the source
  int rows, rows_per_group;
};

// Strides of x are zero along the dimensions of the indices, those of the indices along the others.
struct GatherArguments {
  long out_stride[BOX_RANK];
  long x_stride[BOX_RANK];
  long index_stride[BOX_RANK];
  long axis_stride;  // of x, along the axis that is gathered
  int extent[BOX_RANK];
  int axis_extent;
  int rows, rows_per_group;
};

// The box of the output, and the box over which each of its elements is reduced.
struct ReduceArguments {
  long out_stride[BOX_RANK];
  long a_stride[BOX_RANK];
  long reduced_stride[BOX_RANK];
  int extent[BOX_RANK];
  int reduced_extent[BOX_RANK];
  int rows, rows_per_group;
  int reduced_rows;  // product of all of reduced_extent but the last
  int kind;          // tandem::ReduceAttributes::Kind
  float factor;      // 1 / number of elements, for means
};

// Softmax and layer norm: independent lines of `length` elements.
struct LineArguments {
  long out_stride[BOX_RANK];
  long a_stride[BOX_RANK];
  long out_step, a_step;  // along the line
  int extent[BOX_RANK];
  int lines, lines_per_group;
  int length;
  float epsilon;
};

// Which lines and columns of the input a pixel is mixed of, and their weights, are tables made by
// the host, `taps` entries per output line or column.
struct ResizeArguments {
  long in_image, in_line, in_pixel, in_channel;
  long out_image, out_line, out_pixel, out_channel;
  int images, box_height, box_width;
  int first_y, first_x;
  int channels;
  int lines_per_group, channels_per_group;
  int taps;
};
