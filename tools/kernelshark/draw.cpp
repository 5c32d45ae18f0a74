// SPDX-License-Identifier: GPL-2.0
/*
 * Draws spans and policy switches on the rows of CPUs and tasks.
 *
 * A task's row shows all spans of the task. The row of a CPU shows what began and
 * ended on it. When the task moved to another CPU in between, nobody knows when, so
 * either CPU gets a tick: one where it began, one where it ended. A span of which the
 * begin or the end is missing is a tick on any row. A throttled task sleeps and leaves
 * its CPU to others, so a throttle is an outline on the row of a CPU.
 */
#include <algorithm>
#include <string>

#include "KsPlugins.hpp"

#include "draw.h"
#include "spans.h"

namespace {

/*
 * Each kind has a colour and a lane of its own, in pixels below the row's base line:
 * KernelShark leaves 20 pixels there, and colours what is above by task.
 */
struct Look {
	const char *name;
	KsPlot::Color color;
	int top;
	int bottom;
};

const Look looks[VMP_NR_KINDS] = {
	{ "flush batch", { 240, 130, 0 }, 6, 12 },
	{ "scan", { 130, 130, 130 }, 3, 5 },
	{ "aging", { 0, 140, 70 }, 13, 17 },
	{ "throttle", { 200, 0, 40 }, 18, 22 },
};

/* Where KernelShark writes the time, and from where on rows are not the first one, in pixels. */
const int axis_text = 24;
const int first_row = 60;

const KsPlot::Color switch_color { 110, 0, 190 };

/* A row of the picture. */
class Row {
public:
	Row(KsCppArgV *argv, int id, bool is_task)
	: histo(argv->_histo), graph(argv->_graph), shapes(argv->_shapes), id(id), is_task(is_task)
	{}

	bool has(const kshark_entry *entry) const
	{
		return (is_task ? entry->pid : entry->cpu) == id;
	}

	/* The bin, which is a pixel, of an entry or of the edge beyond which it is. */
	int bin(const kshark_entry *entry) const
	{
		if (entry->ts <= histo->min)
			return 0;
		if (entry->ts >= histo->max)
			return histo->n_bins - 1;
		return std::min<int64_t>((entry->ts - histo->min) / histo->bin_size,
					 histo->n_bins - 1);
	}

	bool shows(const kshark_entry *entry) const
	{
		return entry->ts >= histo->min && entry->ts <= histo->max;
	}

	int x(int bin) const { return graph->bin(bin)._base.x(); }

	int base() const { return graph->bin(0)._base.y(); }

	int top() const { return base() - graph->height(); }

	void box(int left, int right, int bottom, int top, const KsPlot::Color &color, bool fill)
	{
		KsPlot::Rectangle *box = new KsPlot::Rectangle;

		box->setPoint(0, left, top);
		box->setPoint(1, left, bottom);
		box->setPoint(2, right, bottom);
		box->setPoint(3, right, top);
		box->setFill(fill);
		box->_color = color;
		box->_size = 1;
		shapes->push_front(box);
	}

	kshark_trace_histo *histo;
	KsPlot::Graph *graph;
	KsPlot::PlotObjList *shapes;
	int id;
	bool is_task;
};

/* One kind in one row. What can't be told apart is joined: at most a box for each pixel. */
class Lane {
public:
	Lane(Row &row, const Look &look, bool fill) : row(row), look(look), fill(fill) {}

	~Lane() { flush(); }

	/* From one bin to another; they come in order of their begin. */
	void add_span(int from, int to)
	{
		if (open && from <= last) {
			last = std::max(last, to);
			return;
		}
		flush();
		open = true;
		first = from;
		last = to;
	}

	void add_tick(int bin)
	{
		if (bin != last_tick)
			draw(bin, bin);
		last_tick = bin;
	}

private:
	void draw(int from, int to)
	{
		int left = row.x(from), right = std::max(row.x(to), left + 1);

		row.box(left, right, row.base() + look.bottom, row.base() + look.top, look.color,
			fill || right - left < 3);
	}

	void flush()
	{
		if (open)
			draw(first, last);
		open = false;
	}

	Row &row;
	const Look &look;
	bool fill;
	bool open = false;
	int first = 0;
	int last = 0;
	int last_tick = -1;
};

void draw_spans(const vmp_spans &spans, const Look &look, Row &row, bool fill)
{
	Lane lane(row, look, fill);

	for (size_t i = vmp_first_at(&spans, row.histo->min); i < spans.nr; i++) {
		const vmp_span &span = spans.span[i];

		if (vmp_span_first(&span)->ts > row.histo->max)
			break;
		if (vmp_span_last(&span)->ts < row.histo->min)
			continue;
		bool begins = span.begin && row.has(span.begin);
		bool ends = span.end && row.has(span.end);

		if (begins && ends)
			lane.add_span(row.bin(span.begin), row.bin(span.end));
		else if (begins && row.shows(span.begin))
			lane.add_tick(row.bin(span.begin));
		else if (ends && row.shows(span.end))
			lane.add_tick(row.bin(span.end));
	}
}

/* The font needs the OpenGL context, which there is only while something is drawn. */
ksplot_font *font()
{
	static ksplot_font loaded;

	if (!ksplot_font_is_loaded(&loaded) && !ksplot_init_font(&loaded, 13, TT_FONT_FILE))
		return nullptr;
	return &loaded;
}

int text_width(const std::string &text)
{
	float width = 0;

	for (unsigned char c : text) {
		if (c >= KS_SPACE_CHAR && c <= KS_TILDA_CHAR)
			width += font()->cdata[c - KS_SPACE_CHAR].xadvance;
	}
	return width + 1;
}

void draw_text(Row &row, const std::string &text, int x, int y)
{
	row.shapes->push_front(new KsPlot::TextBox(font(), text, KsPlot::Point(x, y)));
}

/*
 * The labels are above the top row only: a switch is one for all CPUs and tasks. Where
 * there is no room for one, the mark stands alone.
 */
void draw_switches(const vmp_stream &vs, Row &row, bool top_row)
{
	int free_from = 0, right_edge = row.x(row.histo->n_bins - 1);

	for (size_t i = 0; i < vs.nr_switches; i++) {
		const vmp_switch &sw = vs.sw[i];

		if (!row.shows(sw.entry))
			continue;
		int x = row.x(row.bin(sw.entry));

		row.box(x, x + 3, row.base() + 22, row.top(), switch_color, true);
		if (!top_row || !font())
			continue;
		int width = text_width(sw.label);
		int left = x + 6 + width <= right_edge ? x + 6 : x - 3 - width;

		if (left < free_from)
			continue;
		draw_text(row, sw.label, left, row.top() + 2);
		free_from = left + width;
	}
}

/* Between the times at the left and in the middle of the axis, where it fits. */
void draw_legend(const vmp_stream &vs, Row &row)
{
	const int gap = 14, side = 9, time_width = 90, y = axis_text;

	if (!font())
		return;
	int x = row.x(0) + time_width;
	int room = row.x(row.histo->n_bins / 2) - time_width;

	for (int kind = 0; kind < VMP_NR_KINDS; kind++) {
		int width = side + gap / 2 + text_width(looks[kind].name) + gap;

		if (!vs.kind[kind].nr)
			continue;
		if (x + width > room)
			break;
		row.box(x, x + side, y, y - side, looks[kind].color, true);
		draw_text(row, looks[kind].name, x + side + gap / 2, y);
		x += width;
	}
}

} /* namespace */

/*
 * Called for one row after the other, from the top down, whenever the picture is made
 * anew. val is the CPU or the task.
 */
void vmp_draw(kshark_cpp_argv *argv, int sd, int val, int draw_action)
{
	vmp_stream *vs = vmp_stream_of(sd);
	KsCppArgV *cpp = KS_ARGV_TO_CPP(argv);
	bool is_task = draw_action & KSHARK_TASK_DRAW;

	if (!vs || !(draw_action & (KSHARK_TASK_DRAW | KSHARK_CPU_DRAW)) || !vmp_prepare(vs))
		return;
	if (!cpp->_graph || cpp->_histo->n_bins < 1 || cpp->_histo->bin_size < 1)
		return;

	Row row(cpp, val, is_task);
	bool top_row = row.base() <= vs->last_base || !vs->last_base;

	vs->last_base = row.base();
	for (int kind = 0; kind < VMP_NR_KINDS; kind++)
		draw_spans(vs->kind[kind], looks[kind], row, is_task || kind != VMP_THROTTLE);
	draw_switches(*vs, row, top_row);
	if (row.top() < first_row)
		draw_legend(*vs, row);
}
